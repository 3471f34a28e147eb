module github.com/jitscribe/jitscribe/bindings/go/codelog

go 1.19

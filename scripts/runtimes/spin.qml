import QtQml 2.15

QtObject {
    function inner(n) {
        var sum = 0;
        for (var i = 0; i < n; i++) sum = (sum * 31 + i) % 1000003;
        return sum;
    }
    Component.onCompleted: {
        var total = 0;
        for (var i = 0; i < 400; i++) total += inner(100000);
        console.log(total);
        Qt.quit();
    }
}

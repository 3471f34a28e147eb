# Short names for the usual commands. CONTRIBUTING.md explains them; `just --list` lists them.

# List the commands
default:
    @just --list

# Build all crates (debug); the command is target/debug/jitscribe
build *ARGS:
    cargo build --locked {{ARGS}}

# All tests, with the real tools and runtimes (Debian 12; installs what is missing)
test:
    scripts/test.sh

# The tests of one crate: just test-one jitdump [--test codes]
test-one CRATE *ARGS:
    cargo test --locked -p {{CRATE}} {{ARGS}}

# Format, clippy, rules for in-process crates, rustdoc, dependencies
lint:
    scripts/lint.sh

# Fuzz targets: just fuzz [SECONDS] [TARGET...]
fuzz *ARGS:
    scripts/fuzz.sh {{ARGS}}

# Measurements beside perf inject: just bench [quick|full] [--only …]
bench *ARGS:
    scripts/bench.sh {{ARGS}}

# Kills, forks, limits and forbidden system calls (root): just storm [SECONDS]
storm *ARGS:
    scripts/storm.sh {{ARGS}}

# Licences, bans, sources and advisories of dependencies
deny *ARGS:
    scripts/deny.sh {{ARGS}}

# Every crate can be published: just package [--verify]
package *ARGS:
    scripts/package.sh {{ARGS}}

# What runtimes link builds with the oldest Rust that it promises
oldest:
    scripts/oldest.sh

# Every set of features of every published crate builds: just features [CRATE...]
features *ARGS:
    scripts/features.sh {{ARGS}}

# The demo: a small JIT under perf
demo *ARGS:
    scripts/demo.sh {{ARGS}}

# What continuous integration runs
ci:
    .ci/run

# Searches the history's texts with Perl's expressions.
cd "$(dirname "$0")/../.." || exit
for _ in 1 2 3 4 5 6; do git grep -P -c '(\w+)\s+(\w+)ing\b.*(?=the)' -- docs crates >/dev/null; done

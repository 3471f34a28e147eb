<?php
// Searches with regular expressions until so many seconds of processor time have passed.
function used(): float
{
    $usage = getrusage();
    return $usage["ru_utime.tv_sec"] + $usage["ru_utime.tv_usec"] / 1e6;
}

$text = str_repeat("GET /index.html HTTP/1.1 user-agent: name 4711 ok\n", 4000);
$count = 0;
while (used() < (float) $argv[1]) {
    $count += preg_match_all('/(\w+)-agent:\s+([a-z]+)\s+(\d{3,5})/i', $text, $found);
    $count += preg_match_all('~^GET (?<path>\S+) HTTP/\d\.\d.*ok$~m', $text, $found);
}
echo $count > 0 ? "done\n" : "nothing found\n";

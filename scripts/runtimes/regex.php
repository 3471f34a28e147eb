<?php
$text = str_repeat("GET /index.html HTTP/1.1 user-agent: name 4711 ok\n", 4000);
for ($i = 0; $i < 900; $i++) {
    preg_match_all('/(\w+)-agent:\s+([a-z]+)\s+(\d{3,5})/i', $text, $found);
}
echo count($found[0]), "\n";

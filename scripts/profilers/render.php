<?php
// Twig at work: it compiles and renders a page again and again. The argument is the number of rounds. With a file as the second one, it writes its stacks
// there, which Excimer takes.
require '/usr/share/php/Twig/autoload.php';

if (isset($argv[2])) {
    $profiler = new ExcimerProfiler;
    $profiler->setEventType(EXCIMER_CPU);
    $profiler->setPeriod(0.001);
    $profiler->start();
}

$page = <<<'END'
{% macro cell(value) %}<td>{{ value|escape }}</td>{% endmacro %}
<h1>{{ title|upper }}</h1>
<table>
{% for row in rows %}
  <tr class="{{ cycle(['light', 'dark'], loop.index) }}">{{ _self.cell(row.name) }}{{ _self.cell(row.number|number_format(2)) }}</tr>
{% endfor %}
</table>
END;
$rows = [];
for ($number = 0; $number < 50; $number++) {
    $rows[] = ['name' => "row $number & more", 'number' => $number * 7919 % 1000];
}
$length = 0;
for ($round = 0; $round < (int) $argv[1]; $round++) {
    // A new environment compiles the template again.
    $environment = new \Twig\Environment(new \Twig\Loader\ArrayLoader(['page' => $page . str_repeat(' ', $round % 5)]));
    $length += strlen($environment->render('page', ['title' => 'Rows', 'rows' => $rows]));
}
echo $length, "\n";
if (isset($argv[2])) {
    $profiler->stop();
    file_put_contents($argv[2], $profiler->getLog()->formatCollapsed());
}

<!DOCTYPE html>
<p>Don't take this "for a string: /* it is a template.
<?php
declare(strict_types=1);

namespace App; // a comment with 'quotes'

# another "one"
#[Attribute]
final class Greeter {
    /** Says it. */
    public function greet(string $name, int $times = 1_000): string {
        $plain = 'it\'s \\';
        $text = "Hello $name, {$this->title("quoted")} and \"escaped\"";
        $rate = 1.5e-3 + .25 * 0x1F;
        $long = <<<EOT
          Dear $name /* no comment */
            'still' "a string"
          EOTX goes on
          EOT;
        $raw = <<<'END'
        $nothing // here
        END;
        return $text . $plain . $long . $raw /* inline */ . "several
lines";
    }
}
?>
<b>'out' again // </b>
<?= 'end' ?>

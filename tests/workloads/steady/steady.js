// Works until it is killed, half of the time in one function, and the rest in two others.
function heavy(n) { return n < 2 ? n : heavy(n - 1) + heavy(n - 2); }
function middle(n) { return n < 2 ? n : middle(n - 1) + middle(n - 2); }
function light(n) { return n < 2 ? n : light(n - 1) + light(n - 2); }
for (;;) { heavy(18); heavy(18); heavy(18); middle(18); middle(18); light(18); }

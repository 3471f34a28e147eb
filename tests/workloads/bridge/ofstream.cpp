// Writes a perf map by a stream of C++, prints what it wrote, and waits for a line on standard input.
#include <fstream>
#include <iostream>
#include <string>
#include <unistd.h>

static char code[256];

int main(int, char **words)
{
    std::string path = std::string(words[1]) + "/perf-" + std::to_string(getpid()) + ".map";
    std::ofstream stream(path);
    for (int number = 0; number < 3; number++) {
        stream << std::hex << (unsigned long)(code + 64 * number) << " 20 ofstream " << number << std::endl;
        std::cout << std::hex << (unsigned long)(code + 64 * number) << " 20 ofstream " << number << std::endl;
    }
    std::cout << "done" << std::endl;
    std::cin.get();
    unlink(path.c_str());
    return 3;
}

// What python3 is where it is linked to libpython (3.8 and later).
int Py_BytesMain(int count, char **arguments);

int main(int count, char **arguments) { return Py_BytesMain(count, arguments); }

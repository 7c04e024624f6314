'use strict';
// Tries proposals in warm processes: each loads the tests again with the edited source in the place of the file, and
// nothing is written. Takes the path of a request (packed JSON) and prints events as the Python engine does.
if (process.argv[2] === '--child') require('./working.cjs').work();
else require('./leading.cjs').lead(process.argv[2]);

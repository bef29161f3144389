package sqlstore

// Write is write, for tests that use PostgreSQL.
var Write = (*Store).write

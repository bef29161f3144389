-- +goose Up
-- What the database knows of the server itself. key_check is a keyed hash of a constant: it tells whether a server has the
-- key that the stored hashes were made with.
CREATE TABLE settings (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL
);

-- +goose Down
DROP TABLE settings;

-- +goose Up
-- Settings of the server. key_check is a keyed hash of a constant. It shows whether a server has the key that the
-- stored hashes were made with.
CREATE TABLE settings (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL
);

-- +goose Down
DROP TABLE settings;

-- +goose Up
-- What happened to links and to the codes that ask for them. Every ref is a keyed hash of its own kind: without the key
-- no line leads to a row of another table. id is random, or a hash where a line may be there once only.
CREATE TABLE link_trail (
	id          TEXT PRIMARY KEY,
	at          BIGINT NOT NULL,
	action      TEXT NOT NULL,
	code_ref    TEXT NOT NULL,
	link_ref    TEXT NOT NULL,
	account_ref TEXT NOT NULL,
	address_ref TEXT NOT NULL
);
CREATE INDEX link_trail_at ON link_trail (at);

-- +goose Down
DROP TABLE link_trail;

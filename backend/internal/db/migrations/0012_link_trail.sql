-- +goose Up
-- The history of links and device codes. Each ref is a keyed hash, with a different kind per column. at is exact
-- because operators need it, so it connects a line with a code, link or audit entry of the same moment while that is
-- stored. The hashes protect values that are no longer stored, and addresses that are stored nowhere else. id is
-- random, or a hash if the line may exist only once.
CREATE TABLE link_trail (
	id          TEXT PRIMARY KEY,
	at          BIGINT NOT NULL,
	action      TEXT NOT NULL,
	code_ref    TEXT NOT NULL,
	link_ref    TEXT NOT NULL,
	account_ref TEXT NOT NULL,
	address_ref TEXT NOT NULL
);
CREATE INDEX link_trail_at ON link_trail (at, action);

-- +goose Down
DROP TABLE link_trail;

-- +goose Up
-- What happened to links and to the codes that ask for them. Every ref is a keyed hash of its own kind. at is exact, for
-- an operator needs it: it leads from a line to a code, a link or an entry of audit of the same moment while that is still
-- stored. The hashes protect what is not stored any more, and addresses that stood nowhere else. id is random, or a hash
-- where a line may be there once only.
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

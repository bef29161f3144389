-- +goose Up
-- A row for each passkey ceremony that was answered: how often, and whether one of the answers was right. It goes when the
-- ceremony is overdue anyway. challenge is random and no secret.
CREATE TABLE passkey_ceremonies (
	challenge TEXT PRIMARY KEY,
	until     BIGINT NOT NULL,
	tries     INTEGER NOT NULL,
	done      INTEGER NOT NULL
);
CREATE INDEX passkey_ceremonies_until ON passkey_ceremonies (until);

-- +goose Down
DROP TABLE passkey_ceremonies;

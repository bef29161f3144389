-- +goose Up
-- One row per account, or browser known to an account, that has spent some of its allowance of wrong passwords. key
-- is a keyed hash. spent_until is when the full allowance is available again; then the row has no use.
CREATE TABLE password_guesses (
	key         TEXT PRIMARY KEY,
	spent_until BIGINT NOT NULL
);
CREATE INDEX password_guesses_spent ON password_guesses (spent_until);

-- +goose Down
DROP TABLE password_guesses;

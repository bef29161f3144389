-- +goose Up
-- How much of its allowance of wrong passwords an account, or a browser that it was used in before, has spent. key is a
-- keyed hash; spent_until is when the whole allowance is there again, and the row of no use.
CREATE TABLE password_guesses (
	key         TEXT PRIMARY KEY,
	spent_until BIGINT NOT NULL
);
CREATE INDEX password_guesses_spent ON password_guesses (spent_until);

-- +goose Down
DROP TABLE password_guesses;

-- +goose Up
-- caps_version counts changes of the caps; each change names the version it replaces. filled is the account's balance
-- when money was last added or deducted.
ALTER TABLE credit_balances ADD COLUMN caps_version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE credit_balances ADD COLUMN filled BIGINT NOT NULL DEFAULT 0;
ALTER TABLE gateway_settings ADD COLUMN caps_version BIGINT NOT NULL DEFAULT 0;
UPDATE credit_balances SET filled = posted;

-- The last mail about each cap and about the balance of an account. project is empty for the account's limits. what
-- is day, month or balance. period is the period that the mail was about; it is empty once the cap was changed or
-- money was added. day is the UTC day of the mail, because at most one is sent per day.
CREATE TABLE credit_notices (
	account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	project    TEXT NOT NULL,
	what       TEXT NOT NULL,
	period     TEXT NOT NULL,
	day        TEXT NOT NULL,
	PRIMARY KEY (account_id, project, what)
);
CREATE INDEX credit_notices_day ON credit_notices (day);

-- +goose Down
DROP TABLE credit_notices;
ALTER TABLE gateway_settings DROP COLUMN caps_version;
ALTER TABLE credit_balances DROP COLUMN filled;
ALTER TABLE credit_balances DROP COLUMN caps_version;

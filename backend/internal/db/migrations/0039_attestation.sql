-- +goose Up
-- What calls with a project key alone may spend per UTC day, in micro-USD. NULL sets no limit, as in every project that
-- an earlier version created.
ALTER TABLE gateway_settings ADD COLUMN key_allowance BIGINT;

-- Whether a hold counts toward this allowance, and what such calls have spent. Only the rows of a project and a day use
-- key_spent. What they hold is the sum of their open holds.
ALTER TABLE credit_holds ADD COLUMN by_key INTEGER NOT NULL DEFAULT 0;
ALTER TABLE credit_spending ADD COLUMN key_spent BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE credit_spending DROP COLUMN key_spent;
ALTER TABLE credit_holds DROP COLUMN by_key;
ALTER TABLE gateway_settings DROP COLUMN key_allowance;

-- +goose Up
-- A passkey works only at the host at which it was added. '' is a passkey from before hosts were stored.
ALTER TABLE passkeys ADD COLUMN host TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE passkeys DROP COLUMN host;

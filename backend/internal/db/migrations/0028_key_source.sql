-- +goose Up
-- What pays for a project's model calls: credit, or own for the project's own keys.
ALTER TABLE gateway_settings ADD COLUMN key_source TEXT NOT NULL DEFAULT 'credit';

-- +goose Down
ALTER TABLE gateway_settings DROP COLUMN key_source;

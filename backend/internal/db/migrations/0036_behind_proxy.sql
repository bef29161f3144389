-- +goose Up
-- Whether ip is the address of a proxy that is not trusted, so that the browser's own address is unknown.
ALTER TABLE web_sessions ADD COLUMN behind_proxy INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE web_sessions DROP COLUMN behind_proxy;

-- +goose Up
-- Tokens of sound in realtime sessions. Servers of an earlier version do not write these columns.
ALTER TABLE gateway_usage ADD COLUMN audio_in BIGINT NOT NULL DEFAULT 0;
ALTER TABLE gateway_usage ADD COLUMN audio_cached BIGINT NOT NULL DEFAULT 0;
ALTER TABLE gateway_usage ADD COLUMN audio_out BIGINT NOT NULL DEFAULT 0;
ALTER TABLE gateway_calls ADD COLUMN audio_in BIGINT NOT NULL DEFAULT 0;
ALTER TABLE gateway_calls ADD COLUMN audio_cached BIGINT NOT NULL DEFAULT 0;
ALTER TABLE gateway_calls ADD COLUMN audio_out BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE gateway_calls DROP COLUMN audio_out;
ALTER TABLE gateway_calls DROP COLUMN audio_cached;
ALTER TABLE gateway_calls DROP COLUMN audio_in;
ALTER TABLE gateway_usage DROP COLUMN audio_out;
ALTER TABLE gateway_usage DROP COLUMN audio_cached;
ALTER TABLE gateway_usage DROP COLUMN audio_in;

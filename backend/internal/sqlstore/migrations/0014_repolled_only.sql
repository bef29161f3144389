-- +goose Up
-- Few codes are polled again once they are redeemed; the others are not written into this index.
DROP INDEX device_codes_repolled;
CREATE INDEX device_codes_repolled ON device_codes (repolled_at) WHERE repolled_at IS NOT NULL;

-- +goose Down
DROP INDEX device_codes_repolled;
CREATE INDEX device_codes_repolled ON device_codes (repolled_at);

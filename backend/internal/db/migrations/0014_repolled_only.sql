-- +goose Up
-- Few codes are polled again after they are redeemed, so the index contains only these.
DROP INDEX device_codes_repolled;
CREATE INDEX device_codes_repolled ON device_codes (repolled_at) WHERE repolled_at IS NOT NULL;

-- +goose Down
DROP INDEX device_codes_repolled;
CREATE INDEX device_codes_repolled ON device_codes (repolled_at);

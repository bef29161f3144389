-- +goose Up
-- Like analytics_sums, for one version of the app on one platform, so that reports can be filtered by either. Both may
-- be empty, but not at the same time.
CREATE TABLE analytics_slices (
	project  BIGINT NOT NULL REFERENCES analytics_projects (id) ON DELETE CASCADE,
	span     BIGINT NOT NULL,
	at       BIGINT NOT NULL,
	kind     BIGINT NOT NULL,
	version  TEXT NOT NULL,
	platform TEXT NOT NULL,
	name     TEXT NOT NULL,
	n        BIGINT NOT NULL,
	PRIMARY KEY (project, span, at, kind, version, platform, name)
);
CREATE INDEX analytics_slices_version ON analytics_slices (project, span, version, at);
CREATE INDEX analytics_slices_platform ON analytics_slices (project, span, platform, at);

-- +goose Down
DROP TABLE analytics_slices;

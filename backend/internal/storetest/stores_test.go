package storetest

import (
	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/memory"
	"github.com/service-dev/service/backend/internal/passkey"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/backend/internal/telemetry"
)

// The aliases give the embedded fields of stores their names.
type (
	accountStore     = account.Store
	analyticsStore   = analytics.Store
	assistantStore   = assistant.Store
	auditStore       = audit.Store
	connpageStore    = connpage.Store
	credentialsStore = credentials.Store
	creditStore      = credit.Store
	gatewayStore     = gateway.Store
	grantsStore      = grants.Store
	linkStore        = link.Store
	memoryStore      = memory.Store
	passkeyStore     = passkey.Store
	projectsStore    = projects.Store
	sessionsStore    = sessions.Store
	telemetryStore   = telemetry.Store
)

// stores are the stores of all features in one database.
type stores struct {
	*db.DB
	*accountStore
	*analyticsStore
	*assistantStore
	*auditStore
	*connpageStore
	*credentialsStore
	*creditStore
	*gatewayStore
	*grantsStore
	*linkStore
	*memoryStore
	*passkeyStore
	*projectsStore
	*sessionsStore
	*telemetryStore
}

func newStores(d *db.DB) stores {
	return stores{
		d, account.NewStore(d), analytics.NewStore(d), assistant.NewStore(d), audit.NewStore(d), connpage.NewStore(d),
		credentials.NewStore(d), credit.NewStore(d), gateway.NewStore(d), grants.NewStore(d), link.NewStore(d),
		memory.NewStore(d), passkey.NewStore(d), projects.NewStore(d), sessions.NewStore(d), telemetry.NewStore(d),
	}
}

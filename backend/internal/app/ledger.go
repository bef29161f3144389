package app

import (
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/secret"
)

// ledger returns the ledger of the gateway's credit, whose maintenance runs beside the requests.
func (a *App) ledger(o Options) *credit.Ledger {
	l := credit.New(credit.Options{
		Store: a.store, Hasher: secret.NewHasher(a.config.HMACKey), Free: 2 * credit.USD, NeedsProof: a.config.Mail.Host != "",
		Log: o.Log,
	})
	a.serving = append(a.serving, l)
	return l
}

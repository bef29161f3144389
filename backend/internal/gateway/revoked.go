package gateway

import (
	"context"
	"maps"
	"slices"
)

// keysAtOnce is the maximum number of keys that one query checks.
const keysAtOnce = 256

// cutRevoked cuts off calls whose key or session is no longer valid, for example because its link was revoked. It
// queries the store, because another process may have revoked the key. Calls whose key cannot be checked continue.
func (s *Service) cutRevoked(ctx context.Context) error {
	calls, ids := s.kept(), map[string]bool{}
	maps.DeleteFunc(calls, func(c *call, _ context.CancelCauseFunc) bool { return c.kind == kindMemory }) // see ask
	for c := range calls {
		ids[c.who.Key] = true
	}
	for batch := range slices.Chunk(slices.Collect(maps.Keys(ids)), keysAtOnce) {
		live, err := s.Keys.LiveKeys(ctx, batch)
		if err != nil {
			return err
		}
		for _, id := range live {
			delete(ids, id)
		}
	}
	for c, cut := range calls {
		if ids[c.who.Key] {
			cut(errRevoked)
		}
	}
	return nil
}

package analytics

import (
	"context"
	"fmt"
	"time"
)

// Report tells what an app did. Reports by hour are up to 7 days long and begin within KeptHours, those by day up to 90
// days. The project is not looked up: the caller has. The error may wrap ErrInvalid, with words.
func (s *Service) Report(ctx context.Context, account, project string, q Query) (Report, error) {
	r := Report{Project: project, Interval: q.Interval}
	return r, fmt.Errorf("%w: %v %v", ErrInvalid, ctx, time.Hour)
}

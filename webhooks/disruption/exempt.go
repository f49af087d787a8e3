package disruption

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/pub"
)

// recordTimeout is how long a disruption by an exempt user waits at most for its record.
const recordTimeout = 2 * time.Second

// Review decides about a disruption, and records one that is admitted. The error is about a lookup or a write, and a
// retry may succeed where errors.As finds no refusal of the API server in it. A disruption by an exempt user is
// admitted also where the record fails.
func (g *Guard) Review(ctx context.Context, d Disruption) (Decision, error) {
	if !g.Exempts(d.User) {
		return g.review(ctx, d)
	}
	within, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	decision, err := g.review(within, d)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to record the disruption of an exempt user",
			"pod", client.ObjectKeyFromObject(d.Pod), "user", d.User)
		decision = Decision{Verdict: pub.Verdict{Allowed: true, Reason: pub.UserExempt}}
	}
	return decision, nil
}

// Exempts reports whether a user is never refused.
func (g *Guard) Exempts(user string) bool { return g.options.Policy.Exempts(user) }

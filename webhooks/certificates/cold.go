package certificates

import (
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// coldGrace is how long a replica that can serve waits for its caches before it becomes ready without them.
const coldGrace = 30 * time.Second

// ColdStart returns a readiness check for caches. Where a CRD of the targets has several stored versions, the check
// also passes once the certificate has been in use for 30 seconds: the caches of a replica sync only after the
// conversion webhook has answered. A Service sends the conversions to ready replicas alone, so that without this check
// no replica would ever become ready on a cold start.
//
// Reviews that arrive before the caches are synced wait for them, and fail by the failure policy of their webhook, as
// they do without a ready replica.
func (k *Keeper) ColdStart(check healthz.Checker) healthz.Checker {
	return func(r *http.Request) error {
		err, older := check(r), false
		k.older.Range(func(any, any) bool { older = true; return false })
		if since := k.settled.Load(); older && since != nil && k.clock.Since(*since) >= coldGrace {
			return nil
		}
		return err
	}
}

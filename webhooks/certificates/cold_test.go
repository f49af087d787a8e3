package certificates

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// A replica without caches becomes ready once its certificate has been in use for a while, where stored objects need
// the conversion webhook.
func TestColdStart(t *testing.T) {
	clock := clocktesting.NewFakeClock(epoch())
	k := &Keeper{clock: clock}
	unsynced := errors.New("caches are not synced")
	check := k.ColdStart(func(*http.Request) error { return unsynced })
	ready := func() bool {
		err := check(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
		if err != nil && !errors.Is(err, unsynced) {
			t.Errorf("the check failed with %v", err)
		}
		return err == nil
	}
	k.older.Store("clonesets.apps.kruise.io", nil)
	clock.Step(time.Hour)
	if ready() {
		t.Error("the replica is ready without a certificate")
	}
	now := clock.Now()
	k.settled.Store(&now)
	clock.Step(coldGrace - time.Second)
	if ready() {
		t.Error("the replica is ready before the caches had their time")
	}
	clock.Step(time.Second)
	if !ready() {
		t.Error("the replica is not ready, so that no object is converted")
	}
	k.older.Clear()
	if ready() {
		t.Error("the replica is ready although no stored object needs a conversion")
	}
	synced := k.ColdStart(func(*http.Request) error { return nil })
	if err := synced(nil); err != nil {
		t.Errorf("the replica has its caches: %v", err)
	}
}

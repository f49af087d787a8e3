package sidecarterminator

import "testing"

func TestNew(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil {
		t.Error("there is no client")
	}
}

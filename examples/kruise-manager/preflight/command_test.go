package preflight

import (
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	if o, err := Parse([]string{"--namespace=x", "--kubeconfig=y"}); err != nil || o != (Options{"y", "x"}) {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := Parse([]string{"now"}); err == nil {
		t.Error("an argument is taken")
	}
	if !strings.Contains(Usage(), "-namespace") {
		t.Errorf("the help is %q", Usage())
	}
}

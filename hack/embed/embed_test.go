package main

import (
	"slices"
	"testing"
)

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		budget budget
		bill   bill
		want   []string
	}{
		"what is allowed and few enough passes": {
			budget{allowed: []string{"k8s.io/api"}, most: 2}, bill{own: 1, foreign: []string{"k8s.io/api/core/v1"}}, nil,
		},
		"one more than the bound": {
			budget{allowed: []string{"k8s.io/api"}, most: 1},
			bill{own: 1, foreign: []string{"k8s.io/api/core/v1"}},
			[]string{"brings 2 packages, the bound is 1"},
		},
		"a prefix ends at a slash": {
			budget{allowed: []string{"k8s.io/api"}, most: 9},
			bill{foreign: []string{"k8s.io/apiserver/pkg/server"}},
			[]string{"is not allowed to bring along k8s.io/apiserver/pkg/server"},
		},
		"a client is too dear even where it is allowed": {
			budget{allowed: []string{"k8s.io"}, most: 9},
			bill{foreign: []string{"k8s.io/client-go/rest"}},
			[]string{"must not bring along k8s.io/client-go/rest"},
		},
	}
	for why, tt := range tests {
		t.Run(why, func(t *testing.T) {
			if got := tt.budget.check(tt.bill); !slices.Equal(got, tt.want) {
				t.Errorf("check = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRaisedTo(t *testing.T) {
	type require = struct{ Path, Version string }
	before := versions{Go: "1.24.0", Require: []require{{"k8s.io/api", "v0.34.1"}, {"golang.org/x/net", "v0.38.0"}}}
	after := versions{
		Go: "1.25.0",
		Require: []require{
			{"k8s.io/api", "v0.35.0"}, {"golang.org/x/net", "v0.38.0"}, {"k8s.io/component-helpers", "v0.34.1"},
		},
	}
	want := []string{"go 1.24.0 to 1.25.0", "k8s.io/api v0.34.1 to v0.35.0"}
	if got := before.raisedTo(after); !slices.Equal(got, want) {
		t.Errorf("raised to %q, want %q", got, want)
	}
	if got := before.raisedTo(before); got != nil {
		t.Errorf("the same versions are raised to %q", got)
	}
}

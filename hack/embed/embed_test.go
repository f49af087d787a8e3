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

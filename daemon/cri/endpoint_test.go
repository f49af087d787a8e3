package cri

import "testing"

func TestParseEndpoint(t *testing.T) {
	pipe := endpoint{pipeScheme, `\\.\pipe\containerd-containerd`}
	tests := map[string]endpoint{
		"unix:///run/containerd.sock":            {unixScheme, "/run/containerd.sock"},
		"/run/containerd.sock":                   {unixScheme, "/run/containerd.sock"},
		"npipe://./pipe/containerd-containerd":   pipe,
		"npipe:////./pipe/containerd-containerd": pipe,
		`npipe://\\.\pipe\containerd-containerd`: pipe,
		"npipe://./pipe/a/b":                     {pipeScheme, `\\.\pipe\a\b`},
		"npipe://./pipe/":                        {},
		"npipe://server/pipe/containerd":         {},
		"unix://run/containerd.sock":             {},
		"unix://":                                {},
		"run/containerd.sock":                    {},
		"tcp://127.0.0.1:80":                     {},
		"":                                       {},
	}
	for in, want := range tests {
		t.Run(in, func(t *testing.T) {
			got, err := parseEndpoint(in)
			if got != want || (err == nil) != (want != endpoint{}) {
				t.Errorf("parseEndpoint = %+v, %v, want %+v", got, err, want)
			}
		})
	}
}

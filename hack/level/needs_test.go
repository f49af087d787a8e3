package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestAdvice(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	cases := map[string]struct {
		needs      []need
		want       string
		race, node bool
	}{
		"all is there": {[]need{{"gcc", forRace, yes}}, "", false, false},
		"no C compiler": {
			needs: []need{{"gcc", forRace, no}, {"socat", forNodes, yes}},
			want:  "missing (names of Debian packages): gcc; not tested: the race detector of the unit level, the e2e level",
			race:  true,
		},
		"what is missing is listed in the order of the needs, and each purpose once": {
			needs: []need{{"socat", forNodes, no}, {"gcc", forRace, no}, {"curl", forNodes, no}},
			want: "missing (names of Debian packages): socat gcc curl; not tested: the race detector of the unit level, " +
				"the e2e level",
			race: true,
			node: true,
		},
		"runc is built without seccomp, with which the manager does not run": {
			[]need{{"libseccomp-dev", forSeccomp, no}},
			"missing (names of Debian packages): libseccomp-dev; not tested: the e2e level", false, false,
		},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			absent := missing(c.needs)
			if got := advice(absent); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if lacks(absent, forRace) != c.race || lacks(absent, forNodes) != c.node {
				t.Errorf("lacks race %t, nodes %t", lacks(absent, forRace), lacks(absent, forNodes))
			}
		})
	}
}

// Every need has a package, a purpose and a check of its own.
func TestNeeds(t *testing.T) {
	var names []string
	for _, n := range needs() {
		if n.debian == "" || n.purpose == "" || n.present == nil || slices.Contains(names, n.debian) {
			t.Errorf("%+v", n)
		}
		names = append(names, n.debian)
	}
}

func TestPackagesOf(t *testing.T) {
	absent := []need{{"a", forNodes, nil}, {"b", forRace, nil}}
	if all, nodes := packagesOf(absent, ""), packagesOf(absent, forNodes); !slices.Equal(all, []string{"a", "b"}) ||
		!slices.Equal(nodes, []string{"a"}) {
		t.Errorf("%v, %v", all, nodes)
	}
}

// A package that a system does not have keeps no other one from being installed.
func TestInstall(t *testing.T) {
	cases := map[string]struct {
		lacks string
		want  []string // installed
		err   string
	}{
		"all packages are installed at once": {"", []string{"gcc socat"}, ""},
		"where one is unknown, the others are installed one by one": {
			"socat", []string{"gcc"}, "unable to locate package socat",
		},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			var installed []string
			err := install([]string{"gcc", "socat"}, func(args ...string) error {
				if args[0] != "install" {
					return nil
				}
				if c.lacks != "" && slices.Contains(args, c.lacks) {
					return errors.New("unable to locate package " + c.lacks)
				}
				installed = append(installed,
					strings.Join(slices.DeleteFunc(args[1:], func(a string) bool { return a[0] == '-' }), " "))
				return nil
			})
			if !slices.Equal(installed, c.want) {
				t.Errorf("installed %q, want %q", installed, c.want)
			}
			if got := ""; err != nil || c.err != "" {
				if err != nil {
					got = err.Error()
				}
				if got != c.err {
					t.Errorf("error %q, want %q", got, c.err)
				}
			}
		})
	}
}

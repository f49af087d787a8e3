package packages

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func present() bool { return true }
func absent() bool  { return false }

func TestAdvice(t *testing.T) {
	cases := map[string]struct {
		all        []Package
		want       string
		race, node bool
	}{
		"all is there": {[]Package{{"gcc", Race, present}}, "", false, false},
		"no C compiler": {
			all:  []Package{{"gcc", Race, absent}, {"mount", Nodes, present}},
			want: "missing (names of Debian packages): gcc; not tested: the race detector of the unit level, the e2e level",
			race: true,
		},
		"what is missing is listed in the order of the packages, and each purpose once": {
			all: []Package{{"mount", Nodes, absent}, {"gcc", Race, absent}, {"iproute2", Nodes, absent}},
			want: "missing (names of Debian packages): mount gcc iproute2; not tested: the race detector of the unit level, " +
				"the e2e level",
			race: true,
			node: true,
		},
		"runc is built without seccomp, with which the manager does not run": {
			[]Package{{"libseccomp-dev", Seccomp, absent}},
			"missing (names of Debian packages): libseccomp-dev; not tested: the e2e level", false, false,
		},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			missing := Missing(c.all)
			if got := Advice(missing); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if Lacks(missing, Race) != c.race || Lacks(missing, Nodes) != c.node {
				t.Errorf("lacks race %t, nodes %t", Lacks(missing, Race), Lacks(missing, Nodes))
			}
		})
	}
}

func TestObstacle(t *testing.T) {
	plugins := Package{"containernetworking-plugins", Nodes, absent}
	cases := map[string]struct {
		system string
		root   bool
		absent []Package
		want   string
	}{
		"nothing is missing":       {"linux", true, nil, ""},
		"another operating system": {"darwin", true, []Package{plugins}, "real nodes need Linux"},
		"another user":             {"linux", false, nil, "real nodes need root"},
		"one line names the packages to run and to build": {
			"linux", true,
			[]Package{{"gcc", Race, absent}, {"libseccomp-dev", Seccomp, absent}, plugins},
			"real nodes need these packages (names of Debian): gcc libseccomp-dev containernetworking-plugins",
		},
		"and the rights": {
			"linux", false,
			[]Package{plugins},
			"real nodes need root, and these packages (names of Debian): containernetworking-plugins",
		},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if got := obstacle(c.system, c.root, c.absent); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A package that a system does not have keeps no other one from being installed.
func TestInstall(t *testing.T) {
	cases := map[string]struct {
		lacks string
		want  []string // installed
		err   string
	}{
		"all packages are installed at once": {"", []string{"gcc mount"}, ""},
		"where one is unknown, the others are installed one by one": {
			"mount", []string{"gcc"}, "unable to locate package mount",
		},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			var installed []string
			err := install([]Package{{"gcc", Race, absent}, {"mount", Nodes, absent}}, func(args ...string) error {
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

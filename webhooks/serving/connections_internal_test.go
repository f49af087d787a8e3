package serving

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// world is a model of clients that open, use and close connections. It remembers what is open by its own lists.
type world struct {
	t     *testing.T
	state *connections
	most  int
	open  map[*connection]bool
	known map[netip.Addr]bool
	// spoke are the connections that have carried a valid request.
	spoke map[*connection]bool
}

func newWorld(t *testing.T, most int, known ...netip.Addr) *world {
	w := &world{
		t: t, state: newConnections(most), most: most, known: map[netip.Addr]bool{},
		open: map[*connection]bool{}, spoke: map[*connection]bool{},
	}
	for _, a := range known {
		w.known[a] = true
	}
	return w
}

// groupOf is by what a connection counts.
func (w *world) groupOf(c *connection) group { return groupOf(c.address, w.known[c.address]) }

func (w *world) standing(from netip.Addr) standing {
	if w.known[from] {
		return known
	}
	return stranger
}

// dial opens a connection, and checks what is closed for it.
func (w *world) dial(from netip.Addr) *connection {
	w.t.Helper()
	accepted, replaced := w.state.open(from, w.standing(from))
	if replaced != nil {
		switch {
		case !w.open[replaced]:
			w.t.Fatalf("%s: a connection is closed that is not open", from)
		case w.spoke[replaced] && w.silent(replaced):
			w.t.Fatalf("%s: a connection of %s is closed that has carried a request, and another one has not",
				from, replaced.address)
		case w.known[replaced.address] && !w.known[from]:
			w.t.Fatalf("%s, a stranger: a connection of %s is closed, which is known", from, replaced.address)
		}
		for other := range w.open {
			same := w.groupOf(other) == w.groupOf(replaced)
			if same && w.spoke[other] == w.spoke[replaced] && other.number < replaced.number {
				w.t.Fatalf("%s: connection %d is closed before %d, its elder", from, replaced.number, other.number)
			}
		}
		delete(w.open, replaced)
	}
	if accepted != nil {
		w.open[accepted] = true
	}
	w.check()
	return accepted
}

// silent reports whether the client of a connection has another one that has carried no request.
func (w *world) silent(c *connection) bool {
	for other := range w.open {
		if other != c && w.groupOf(other) == w.groupOf(c) && !w.spoke[other] {
			return true
		}
	}
	return false
}

func (w *world) hangUp(c *connection) {
	w.state.end(c)
	w.state.end(c) // net/http may close twice
	delete(w.open, c)
	w.check()
}

func (w *world) use(c *connection) {
	w.state.spoke(c, w.known[c.address])
	if w.open[c] {
		w.spoke[c] = true
	}
	w.check()
}

// check compares the limits with what is open.
func (w *world) check() {
	w.t.Helper()
	strangers, each := 0, map[group]int{}
	for c := range w.open {
		known := w.known[c.address]
		if !known {
			strangers++
		}
		each[w.groupOf(c)]++
	}
	if len(w.open) > w.most || strangers > w.most/2 {
		w.t.Fatalf("%d connections, %d of strangers, of at most %d", len(w.open), strangers, w.most)
	}
	for of, n := range each {
		if most := w.most / 2; n > most || !of.known && n > max(4, w.most/16) {
			w.t.Fatalf("%d connections of %v", n, of)
		}
	}
	if w.state.all != len(w.open) || w.state.strangers != strangers || len(w.state.groups) != len(each) {
		w.t.Fatalf("counted %d, %d of strangers, %d clients; want %d, %d, %d",
			w.state.all, w.state.strangers, len(w.state.groups), len(w.open), strangers, len(each))
	}
}

// Whatever strangers do, a known client that has less than its share is accepted, and keeps what it opened.
func TestStrangersTakeNoKnownConnection(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			servers := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}
			most := []int{16, 40, 128}[random.IntN(3)]
			w := newWorld(t, most, servers...)
			strangers := strangersOf(random)
			var theirs, ours []*connection
			for range 4 * most {
				switch random.IntN(8) {
				default:
					if c := w.dial(strangers(random)); c != nil {
						theirs = append(theirs, c)
					}
				case 0:
					if len(theirs) > 0 {
						w.hangUp(theirs[random.IntN(len(theirs))])
					}
				case 1:
					if len(theirs) > 0 {
						w.use(theirs[random.IntN(len(theirs))])
					}
				case 2:
					if len(ours) >= most/2 {
						i := random.IntN(len(ours))
						w.hangUp(ours[i])
						ours = slices.Delete(ours, i, i+1)
					}
					from := servers[random.IntN(2)]
					c := w.dial(from)
					if c == nil {
						t.Fatalf("%s is not accepted: %d connections are open, %d of API servers", from, len(w.open), len(ours))
					}
					if random.IntN(2) == 0 {
						w.use(c)
					}
					ours = append(ours, c)
				}
				for _, c := range ours {
					if !w.open[c] {
						t.Fatalf("a connection of %s was closed", c.address)
					}
				}
			}
		})
	}
}

// strangersOf returns who attacks: two pods, many pods, or one that takes all addresses of its network.
func strangersOf(random *rand.Rand) func(*rand.Rand) netip.Addr {
	v4 := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}) }
	switch random.IntN(3) {
	case 0:
		return func(r *rand.Rand) netip.Addr { return v4(r.IntN(2)) }
	case 1:
		return func(r *rand.Rand) netip.Addr { return v4(r.IntN(3000)) }
	default:
		return func(r *rand.Rand) netip.Addr {
			address := netip.MustParseAddr("fd00::8000").As16() // the network is that of an API server
			address[15] = byte(r.IntN(256))
			return netip.AddrFrom16(address)
		}
	}
}

// A stranger that only opens connections closes its own, and not those of another stranger.
func TestOneStrangerAmongMany(t *testing.T) {
	w := newWorld(t, 256)
	honest := netip.MustParseAddr("192.0.2.1")
	mine := w.dial(honest)
	random := rand.New(rand.NewPCG(1, 1))
	for range 1500 {
		w.dial(netip.AddrFrom4([4]byte{10, 1, 0, byte(random.IntN(60))}))
	}
	if mine == nil || !w.open[mine] {
		t.Error("the connection of another stranger was closed")
	}
	if w.dial(honest) == nil {
		t.Error("another stranger is not accepted")
	}
}

// An address of a node may be that of an attacker, too. The others of the known clients are accepted while its
// connections are silent.
func TestKnownAttacker(t *testing.T) {
	var nodes []netip.Addr
	for i := range 3 {
		nodes = append(nodes, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
	}
	server := netip.MustParseAddr("10.0.1.1")
	w := newWorld(t, 64, append(nodes, server)...)
	for i := range 300 {
		w.dial(nodes[i%3])
	}
	for range 20 {
		c := w.dial(server)
		if c == nil {
			t.Fatal("the API server is not accepted")
		}
		w.use(c)
	}
}

// A client that becomes known leaves the share of strangers with its connection.
func TestBecomesKnown(t *testing.T) {
	c := newConnections(64)
	address := netip.MustParseAddr("192.0.2.1")
	one, _ := c.open(address, stranger)
	c.spoke(one, true)
	if c.strangers != 0 || c.all != 1 || !one.group.known {
		t.Errorf("%d strangers of %d, %+v", c.strangers, c.all, one.group)
	}
	c.spoke(one, false)
	if !one.group.known {
		t.Error("the connection is a stranger's again")
	}
	c.end(one)
	if c.all != 0 || len(c.groups) != 0 {
		t.Errorf("%d connections of %d clients are left", c.all, len(c.groups))
	}
}

// An API server at an address of which nothing is known keeps connections idle for each of its webhooks. They make
// room for one that has a request, and none with a request is closed.
func TestIdleConnections(t *testing.T) {
	c := newConnections(1024)
	if c.limit(stranger) != 64 || c.limit(answered) != 256 || c.limit(known) != 512 {
		t.Fatalf("limits %d, %d, %d", c.limit(stranger), c.limit(answered), c.limit(known))
	}
	address := netip.MustParseAddr("10.0.0.7")
	var all []*connection
	for range c.limit(answered) {
		one, replaced := c.open(address, answered)
		if one == nil || replaced != nil {
			t.Fatalf("after %d connections: got %v, closed %v", len(all), one, replaced)
		}
		c.carries(one, true)
		c.spoke(one, false)
		all = append(all, one)
	}
	if one, replaced := c.open(address, answered); one != nil || replaced != nil {
		t.Errorf("all carry requests: got %v, closed %v", one, replaced)
	}
	c.carries(all[7], false)
	c.carries(all[3], false)
	silent, replaced := c.open(address, answered)
	if silent == nil || replaced != all[3] {
		t.Errorf("two are idle: got %v, closed %v, want the older one", silent, replaced)
	}
	if one, replaced := c.open(address, answered); one == nil || replaced != silent {
		t.Errorf("one is silent: got %v, closed %v, want the silent one", one, replaced)
	}
	for _, one := range all {
		c.end(one)
	}
	if c.all != 1 || len(c.groups) != 1 {
		t.Errorf("%d are open of %d clients", c.all, len(c.groups))
	}
}

// A connection whose first request waits for a lookup is not silent.
func TestFirstRequest(t *testing.T) {
	c := newConnections(1024)
	address := netip.MustParseAddr("10.0.0.7")
	first, _ := c.open(address, stranger)
	c.carries(first, true)
	for range 2 * c.limit(stranger) {
		if _, replaced := c.open(address, stranger); replaced == first {
			t.Fatal("a connection with a request is closed")
		}
	}
	c.carries(first, false)
	if _, replaced := c.open(address, stranger); replaced != first {
		t.Errorf("closed %v, want the oldest", replaced)
	}
}

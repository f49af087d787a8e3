package serving

import (
	"cmp"
	"net/netip"
	"slices"
)

const (
	// strange is the part of all connections that strangers may have together, and fewest what one of them may have at
	// least.
	strange, few, fewest = 2, 16, 4
	// network is the length of the prefix by which strangers are counted in IPv6: one pod can have all addresses of it.
	network = 64
)

// connections decide which connections of a listener stay open. It is a value: it reads no clock, and closes nothing
// itself.
//
// Half of the connections are kept for known clients. A stranger has few. A connection is silent until it has carried a
// valid request; where there is no room, the new connection takes the place of the oldest silent one of the client that
// has most of these. So a client that only opens connections closes its own, and one that is known is accepted whatever
// strangers do.
type connections struct {
	most, all, strangers int
	last                 uint64
	groups               map[group]*opened
}

// group is what connections are counted by: the address of a known client, the address or network of a stranger.
type group struct {
	of    netip.Prefix
	known bool
}

// opened are the connections of a group, the silent ones in the order in which they were opened.
type opened struct {
	count  int
	silent []*connection
}

// connection is one that is open.
type connection struct {
	address netip.Addr
	group   group
	number  uint64
	silent  bool
	closed  bool
}

func newConnections(most int) *connections {
	return &connections{most: most, groups: map[group]*opened{}}
}

// groupOf returns by what the connections of a client are counted.
func groupOf(address netip.Addr, known bool) group {
	bits := address.BitLen()
	if !known && address.Is6() {
		bits = network
	}
	of, err := address.Prefix(bits)
	if err != nil {
		return group{known: known} // it has no address
	}
	return group{of, known}
}

// limit of one client.
func (c *connections) limit(of group) int {
	if of.known {
		return max(1, c.most/2)
	}
	return min(max(fewest, c.most/few), max(1, c.most/strange))
}

// open decides about a new connection. It is nil where there is no room. The other connection, if any, must be closed
// for it.
func (c *connections) open(address netip.Addr, known bool) (accepted, replaced *connection) {
	of := groupOf(address, known)
	own := c.groups[of]
	switch {
	case own != nil && own.count >= c.limit(of):
		replaced = own.oldest()
	case !known && c.strangers >= c.most/strange:
		replaced = c.victim(false)
	case c.all >= c.most:
		if replaced = c.victim(false); replaced == nil && known {
			replaced = c.victim(true)
		}
	default:
		return c.add(address, of), nil
	}
	if replaced == nil {
		return nil, nil
	}
	c.end(replaced)
	return c.add(address, of), replaced
}

func (c *connections) add(address netip.Addr, of group) *connection {
	c.last++
	one := &connection{address: address, number: c.last, silent: true}
	c.join(one, of)
	return one
}

// join counts a connection in a group.
func (c *connections) join(one *connection, of group) {
	own := c.groups[of]
	if own == nil {
		own = &opened{}
		c.groups[of] = own
	}
	one.group = of
	own.count++
	c.all++
	if !of.known {
		c.strangers++
	}
	if one.silent {
		at, _ := slices.BinarySearchFunc(own.silent, one.number, func(o *connection, n uint64) int {
			return cmp.Compare(o.number, n)
		})
		own.silent = slices.Insert(own.silent, at, one)
	}
}

// leave is the opposite.
func (c *connections) leave(one *connection) {
	own := c.groups[one.group]
	own.count--
	c.all--
	if !one.group.known {
		c.strangers--
	}
	if at := slices.Index(own.silent, one); at >= 0 {
		own.silent = slices.Delete(own.silent, at, at+1)
	}
	if own.count == 0 {
		delete(c.groups, one.group)
	}
}

// end forgets a connection that is closed; again it has no effect.
func (c *connections) end(one *connection) {
	if !one.closed {
		one.closed = true
		c.leave(one)
	}
}

// spoke records that a connection has carried a valid request, and whether its client is known now. One that was known
// stays so.
func (c *connections) spoke(one *connection, known bool) {
	known = known || one.group.known
	if one.closed || !one.silent && one.group.known == known {
		return
	}
	c.leave(one)
	one.silent = false
	c.join(one, groupOf(one.address, known))
}

// victim returns the oldest silent connection of the group that has most of them, of strangers or of known clients.
func (c *connections) victim(known bool) *connection {
	var chosen *connection
	most := 0
	for of, own := range c.groups {
		if of.known != known || len(own.silent) == 0 {
			continue
		}
		if n, oldest := len(own.silent), own.oldest(); n > most || n == most && oldest.number < chosen.number {
			most, chosen = n, oldest
		}
	}
	return chosen
}

func (o *opened) oldest() *connection {
	if len(o.silent) == 0 {
		return nil
	}
	return o.silent[0]
}

// Package preflight looks at a cluster before an installation or a takeover, and reports what runs there, what to set,
// what will differ for the objects that exist, the commands, and the way back. It writes nothing.
//
// Check is a pure function of Facts. Read collects Facts from an API server.
package preflight

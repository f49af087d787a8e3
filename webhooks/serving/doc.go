// Package serving provides a webhook server for controller-runtime that bounds what its clients cost. Every pod of a
// cluster can connect to a webhook server, and an API server shows no certificate unless it is configured to.
//
// Laws:
//   - One address has at most Limits.PerAddress connections, and all addresses together at most Limits.Connections. The
//     loopback has no limit, so that a probe of this process itself always connects.
//   - A handshake and a header end within 5 seconds, a body within Limits.Read, and a request within Limits.Answer.
//   - A body has at most Limits.Body bytes. The server holds memory in proportion to the bytes that arrived, and never
//     allocates a declared length.
//   - The requests that have a body take at most Limits.Memory together. A request waits for memory at most
//     Limits.Wait, in the order of arrival. It then gets status 429 with Retry-After, and an API server tries again.
//   - A handler runs only after the server checked the certificate, where one is required, and read the whole body.
//
// A client that is no API server can send a review, and read the answer. Options.ClientCA answers API servers alone,
// and a NetworkPolicy does the same. docs/security.md lists what the answers disclose.
//
// In use:
//
//	server, err := serving.New(serving.Options{Port: 9876, TLSOpts: tlsOptions})
//	if err != nil {
//		return err
//	}
//	manager.Options{WebhookServer: server}
//
// Do not use it behind a proxy: all clients of a proxy have one address.
package serving

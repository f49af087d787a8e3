def seconds: capture("^(?<n>[0-9.]+)(?<unit>ms|s|m|h)$") | (.n | tonumber) * {ms: 0.001, s: 1, m: 60, h: 3600}[.unit];

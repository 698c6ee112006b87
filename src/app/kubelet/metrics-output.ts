import { createServer } from 'node:http'
import { isLoopback } from '../../errors/host-port.ts'
import { KcertError, messageOf } from '../../errors/kcert-error.ts'
import { writePublicFile } from '../../system/output-file.ts'
import { type Endpoint, parseEndpoint } from '../../tls/endpoint.ts'

/** An output for metrics; call `changed` when they change. */
export interface MetricsOutput {
  changed(): void
  close(): Promise<void>
}

/** Returns an output that writes to a file for node_exporter's textfile collector. A failed write is reported once. */
export function metricsFile(path: string, text: () => string, note: (text: string) => void): MetricsOutput {
  let isReported = false
  return {
    changed() {
      try {
        writePublicFile(path, text(), { replace: true })
        isReported = false
      } catch (error) {
        if (!isReported) note(`metrics: ${messageOf(error)}`)
        isReported = true
      }
    },
    close: async () => {},
  }
}

/**
 * Returns an output that serves GET /metrics on a loopback address. Throws KCERT_USAGE for any other address, because every
 * client that can connect may read the metrics.
 */
export async function metricsServer(address: string, text: () => string): Promise<MetricsOutput> {
  const endpoint = parseEndpoint(address)
  if (endpoint === undefined || !isLoopback(endpoint.host)) {
    const what = `--metrics-address ${JSON.stringify(address)} is not a loopback address`
    throw new KcertError('KCERT_USAGE', what, {
      why: 'the metrics are for a Prometheus agent on this machine, because kcert does not authenticate clients',
      next: '--metrics-address 127.0.0.1:9464',
    })
  }
  return serveTexts('--metrics-address', endpoint, {
    '/metrics': () => ({ status: 200, type: metricsType, text: text() }),
  })
}

/** The media type of Prometheus' text format. */
export const metricsType = 'text/plain; version=0.0.4; charset=utf-8'

export interface ServedText {
  readonly status: number
  readonly type: string
  readonly text: string
}

/** More clients than a monitoring system and a kubelet need. Each connection costs memory. */
const mostConnections = 64

/** A client that sends nothing must not hold a connection that a probe of the kubelet needs. */
const silence = { headersTimeout: 5_000, requestTimeout: 5_000, connectionsCheckingInterval: 1_000 } as const

/** Serves texts over HTTP: path → the current text. `flag` names the address. Throws KCERT_USAGE if it cannot listen. */
export async function serveTexts(
  flag: string,
  { name, host, port }: Endpoint,
  texts: Readonly<Record<string, () => ServedText>>,
): Promise<MetricsOutput> {
  const server = createServer(silence, ({ url = '', method = '' }, response) => {
    const answer = ['GET', 'HEAD'].includes(method) && Object.hasOwn(texts, url) ? texts[url]?.() : undefined
    const { status, type, text } = answer ?? {
      status: 404,
      type: 'text/plain',
      text: `kcert answers at ${Object.keys(texts).join(', ')}\n`,
    }
    response.writeHead(status, { 'Content-Type': type })
    response.end(text)
  })
  server.maxConnections = mostConnections
  await new Promise<void>((listening, failed) => {
    server.once('error', (error) =>
      failed(
        new KcertError('KCERT_USAGE', `cannot listen on ${flag} ${name}`, {
          why: error.message,
          cause: error,
        }),
      ),
    )
    server.listen(port, host, listening)
  })
  return {
    changed: () => {},
    close: () =>
      new Promise((closed) => {
        server.close(() => closed())
        server.closeAllConnections()
      }),
  }
}

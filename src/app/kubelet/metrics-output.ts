import { createServer } from 'node:http'
import { isLoopback } from '../../errors/host-port.ts'
import { KcertError, messageOf } from '../../errors/kcert-error.ts'
import { writePublicFile } from '../../system/output-file.ts'
import { parseEndpoint } from '../../tls/endpoint.ts'

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
  const server = createServer((request, response) => {
    const isMetrics = request.url === '/metrics' && (request.method === 'GET' || request.method === 'HEAD')
    response.writeHead(isMetrics ? 200 : 404, {
      'Content-Type': isMetrics ? 'text/plain; version=0.0.4; charset=utf-8' : 'text/plain',
    })
    response.end(isMetrics ? text() : 'kcert answers at /metrics\n')
  })
  await new Promise<void>((listening, failed) => {
    server.once('error', (error) =>
      failed(
        new KcertError('KCERT_USAGE', `cannot listen on --metrics-address ${address}`, {
          why: error.message,
          cause: error,
        }),
      ),
    )
    server.listen(endpoint.port, endpoint.host, listening)
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

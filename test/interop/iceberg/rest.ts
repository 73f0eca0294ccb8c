import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type Found, Missing, must, type Part, withClosers } from '../part.ts';
import { TOOLS } from '../tools.ts';

const ICEBERG = '1.10.1';
const FOLDER = join(TOOLS, `iceberg-rest-${ICEBERG}`);
const CLASSPATH = join(FOLDER, 'classpath.txt');

/** The reference server of Iceberg, as Maven has it: the sink's own tests against it, through a proxy where things have to go wrong. */
export const icebergRest: Part = {
  name: 'iceberg-rest',
  checks:
    'tables in a REST catalog: all that a sink has to do, 409, 5xx after a commit that went through, credentials that expire',
  needs: 'Java and Maven',
  run: () => withClosers(tryRest),
};

async function tryRest(opened: (close: () => unknown) => void): Promise<Found> {
  const port = await freePort();
  const classpath = await classpathOf();
  const server = spawn('java', ['-Xmx256m', '-cp', classpath, 'org.apache.iceberg.rest.RESTCatalogServer'], {
    stdio: 'ignore',
    // One connection: its own database is SQLite, which two of them lock for good.
    env: { ...process.env, CATALOG_REST_PORT: String(port), CATALOG_CLIENTS: '1' },
  });
  opened(() => server.kill());
  const uri = `http://127.0.0.1:${port}`;
  await answered(`${uri}/v1/config`);
  const env = { ...process.env, TRIBUTARY_ICEBERG_REST: uri };
  const out = await must('npx', ['vitest', 'run', 'test/integration/iceberg-rest.test.ts'], { env });
  const [counted] = /\d+ passed, 0 failed, 0 skipped/.exec(out) ?? [];
  if (counted === undefined) throw new Error(`not every test ran: ${out.slice(-300)}`);
  return { versions: `Iceberg ${ICEBERG}`, result: counted };
}

const dependency = (id: string, version: string, more = ''): string => {
  const [group, artifact] = id.split(':');
  return `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version>${more}</dependency>`;
};

/** Hadoop brings an older Jetty than the server's. */
const WITHOUT_JETTY = `<exclusions>${['org.eclipse.jetty', 'javax.servlet']
  .map((group) => `<exclusion><groupId>${group}</groupId><artifactId>*</artifactId></exclusion>`)
  .join('')}</exclusions>`;

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>interop</groupId><artifactId>rest-catalog</artifactId><version>1</version><dependencies>
${dependency('org.apache.iceberg:iceberg-open-api', ICEBERG, '<classifier>test-fixtures</classifier>')}
${dependency('org.apache.iceberg:iceberg-core', ICEBERG)}
${dependency('org.apache.iceberg:iceberg-core', ICEBERG, '<classifier>tests</classifier>')}
${dependency('org.apache.hadoop:hadoop-common', '3.4.1', WITHOUT_JETTY)}
${dependency('org.eclipse.jetty:jetty-servlet', '11.0.26')}
${dependency('org.xerial:sqlite-jdbc', '3.50.3.0')}
</dependencies></project>
`;

async function classpathOf(): Promise<string> {
  if (!existsSync(CLASSPATH)) {
    if (process.env.TRIBUTARY_TEST_INSTALL !== '1')
      throw new Missing('no Iceberg REST server: TRIBUTARY_TEST_INSTALL=1 has Maven fetch it');
    mkdirSync(FOLDER, { recursive: true });
    await writeFile(join(FOLDER, 'pom.xml'), POM);
    await must('mvn', ['-q', '-B', 'dependency:build-classpath', `-Dmdep.outputFile=${CLASSPATH}`], { cwd: FOLDER });
  }
  return readFile(CLASSPATH, 'utf8');
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  return port;
}

async function answered(url: string): Promise<void> {
  for (let i = 0; i < 120; i++) {
    if ((await fetch(url).catch(() => undefined))?.ok) return;
    await setTimeout(1000);
  }
  throw new Error(`${url} did not answer within two minutes`);
}

# One image for every process; docker-compose.yml says which one a container runs.
FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
COPY sdk/package.json ./sdk/
COPY cli/package.json ./cli/
COPY cli/bin ./cli/bin
RUN npm ci --omit=dev --no-audit --no-fund

FROM node:24-bookworm-slim
WORKDIR /app
ENV NODE_ENV=production \
    POSTLOOM_ENV=production \
    POSTLOOM_HOST=0.0.0.0 \
    API_PORT=3000 \
    WORKER_PORT=3001
# Checks of certificates, when Temporal or the relay is reached by TLS.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=packages /app/node_modules ./node_modules
COPY --from=packages /app/cli/node_modules ./cli/node_modules
COPY . .
USER node
EXPOSE 3000 3001
ENV MALLOC_ARENA_MAX=2
CMD ["node", "--max-semi-space-size=8", "api/main.ts"]

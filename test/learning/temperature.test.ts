/** The temperature of a model: found again where it is known, bounded where examples say nothing of it. */
import test from 'ava';
import { fitTemperature } from '../../src/learning/ladder.ts';
import { random } from '../support/random.ts';

const softmax = (logits: readonly number[]): Float64Array => {
  const powers = Float64Array.from(logits, Math.exp);
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
};

/** Examples whose labels are drawn from the logits at a temperature, as the model says them at 1. */
function examplesAt(temperature: number, count: number) {
  const next = random(1);
  return Array.from({ length: count }, () => {
    const logits = Array.from({ length: 5 }, () => 6 * temperature * (next() - 0.5));
    const drawn = softmax(logits.map((logit) => logit / temperature));
    let rest = next();
    const label = drawn.findIndex((p) => {
      rest -= p;
      return rest <= 0;
    });
    return { probabilities: softmax(logits), label: label === -1 ? 4 : label };
  });
}

for (const temperature of [0.05, 1, 8]) {
  test(`the temperature ${temperature} is found again`, (t) => {
    const found = fitTemperature(examplesAt(temperature, 4000), 1);
    t.true(Math.abs(found / temperature - 1) < 0.06, `${found}`);
  });
}

test('where every answer is right, it goes no farther from the usual one than the examples outweigh it', (t) => {
  const right = Array.from({ length: 20 }, () => ({ probabilities: softmax([2, 0, 0]), label: 0 }));
  const found = fitTemperature(right, 1);
  t.true(found > 0.2 && found < 1, `${found}`);
  t.true(Math.abs(fitTemperature([], 0.05) - 0.05) < 1e-6);
});

test('a probability of 0 under the label makes it great, not infinite', (t) => {
  const found = fitTemperature([{ probabilities: Float64Array.of(1, 0), label: 1 }], 1);
  t.true(Number.isFinite(found) && found > 1);
});

#pragma once

uint nearest(float value)
{
    return (uint)(value + 0.5);
}
